-- a row is a provider that is left alone until an instant
INSERT INTO notification_pause (service, paused_until, reason)
VALUES (:name, :until, :reason)
ON CONFLICT (service) DO UPDATE SET paused_until = excluded.paused_until, reason = excluded.reason
