-- one row with the instant from which failed runs are told of; the first start sets it
INSERT INTO baseline AS b (name, at)
VALUES ('alerts', clock_timestamp())
ON CONFLICT (name) DO UPDATE
SET at = b.at
RETURNING at
