-- a row is a channel whose provider wants to be left alone
SELECT p.service, p.paused_until, p.pause_reason
FROM delivery_pauses AS p
WHERE p.paused_until > CAST(:now AS timestamptz)
