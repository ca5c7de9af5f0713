-- the row is the message of one attempt, as it was stored when it was claimed
SELECT a.message, a.frame, f.content
FROM email_attempts AS a
LEFT JOIN email_frames AS f ON f.name = a.frame
WHERE a.email_id = :mail_id
  AND a.batch_id = :batch_id
  AND a.position = :position
