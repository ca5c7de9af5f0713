-- a row is a run that was held against the limits, with what it exceeded
UPDATE runtime_monitoring AS m
SET job_escalation_threshold_exceeded = j.threshold,
    job_escalation_annual_limit_exceeded = j.annual,
    job_escalation_monthly_limit_exceeded = j.monthly,
    job_escalation_notification_sent = m.job_escalation_notification_sent OR j.threshold,
    exceedance_checked_at = CAST(:as_of AS timestamptz),
    updated_at = clock_timestamp()
FROM unnest(
    CAST(:ids AS uuid[]), CAST(:thresholds AS boolean[]), CAST(:annuals AS boolean[]), CAST(:monthlies AS boolean[])
) AS j (id, threshold, annual, monthly)
WHERE m.id = j.id
