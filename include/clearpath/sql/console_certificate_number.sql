-- the row says that a certificate has this number
SELECT c.certificate_number
FROM certificates AS c
WHERE c.certificate_number = :number
