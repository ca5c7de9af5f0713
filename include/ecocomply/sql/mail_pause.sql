-- one row if a channel's provider wants to be left alone, with the instant until which it does
SELECT paused_until, pause_reason
FROM delivery_pauses
WHERE service = :name
  AND paused_until > now()
