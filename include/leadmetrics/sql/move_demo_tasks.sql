-- a row is a task of the demo that is moved to where it would be had it come in when its registration began
UPDATE scheduled_task AS t
SET "scheduledAt" = t."scheduledAt" - (t."createdAt" - s."createdAt"),
    "createdAt" = s."createdAt"
FROM registration_session AS s
WHERE s.id LIKE :sessions
  AND t.payload ->> 'sessionId' = s.id
  AND t.status = 'pending'
  AND t."createdAt" > s."createdAt"
