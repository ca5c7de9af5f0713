-- one row: until when a provider is to be left alone, and why; none if it is not
SELECT p.paused_until, p.reason AS pause_reason
FROM notification_pause AS p
WHERE p.service = :name
  AND p.paused_until > now()
