-- a row is a channel whose provider is left alone until an instant
INSERT INTO delivery_pauses (service, paused_until, pause_reason)
VALUES (:name, :until, :reason)
ON CONFLICT (service) DO UPDATE SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
