-- a row is a reason for which lab records are set aside, and how many
SELECT r.reason_code, count(*) AS records
FROM lab_set_aside AS r
WHERE r.resolved_at IS NULL
GROUP BY r.reason_code
ORDER BY records DESC, r.reason_code
