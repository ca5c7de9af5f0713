-- The specification's columns and the engine's say the same, whichever of them a worker writes.
CREATE OR REPLACE FUNCTION background_job_kept() RETURNS trigger LANGUAGE plpgsql AS $kept$
BEGIN
    NEW.urgency := CASE
        WHEN NEW.priority <> 0 THEN NEW.priority
        WHEN NEW.job_type IN (
            'DEADLINE_ALERT', 'EVIDENCE_REMINDER', 'PROCESS_ESCALATIONS', 'CHECK_RUNTIME_EXCEEDANCES',
            'UPDATE_SLA_BREACH_TIMERS', 'DETECT_BREACHES_AND_ALERTS', 'notification-delivery-job',
            'REVIEW_QUEUE_ESCALATION'
        ) THEN 3
        WHEN NEW.job_type IN (
            'CROSS_SELL_TRIGGER_DETECTION', 'CONSULTANT_CLIENT_SYNC', 'REFRESH_COMPLIANCE_DASHBOARD',
            'evidence-retention-job'
        ) THEN 1
        ELSE 2
    END;
    IF TG_OP = 'INSERT' THEN
        NEW.max_attempts := least(NEW.max_attempts, NEW.max_retries + 1);
        RETURN NEW;
    END IF;
    IF NEW.max_retries IS DISTINCT FROM OLD.max_retries THEN
        NEW.max_attempts := NEW.max_retries + 1;
    END IF;
    IF NEW.attempts IS DISTINCT FROM OLD.attempts THEN
        NEW.retry_count := greatest(NEW.attempts - 1, 0);
    END IF;
    IF NEW.status IS DISTINCT FROM OLD.status THEN
        NEW.health_status := CASE WHEN NEW.status = 'FAILED' THEN 'FAILED' ELSE 'HEALTHY' END;
    END IF;
    IF NEW.heartbeat_at IS DISTINCT FROM OLD.heartbeat_at THEN
        NEW.last_heartbeat := coalesce(NEW.heartbeat_at, NEW.last_heartbeat);
    ELSIF NEW.status = 'RUNNING' AND NEW.last_heartbeat IS DISTINCT FROM OLD.last_heartbeat THEN
        NEW.heartbeat_at := NEW.last_heartbeat;
    END IF;
    IF NEW.status = 'RUNNING' AND NEW.last_heartbeat IS DISTINCT FROM OLD.last_heartbeat THEN
        NEW.health_status := 'HEALTHY';
    END IF;
    RETURN NEW;
END
$kept$
