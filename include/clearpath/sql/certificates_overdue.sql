-- a row is a valid certificate whose last valid day is over
SELECT id
FROM certificates
WHERE status = 'valid'
  AND valid_until < :today
ORDER BY id
