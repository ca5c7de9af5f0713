-- one row with the number of claimed mails that have no answer yet
SELECT count(*)
FROM email_attempts
WHERE outcome IS NULL
  AND email_id IS NOT NULL
