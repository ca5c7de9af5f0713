-- one row if a mail service wants to be left alone, with the instant until which it does
SELECT paused_until, pause_reason
FROM mail_pauses
WHERE service = :name
  AND paused_until > now()
