-- a row is the mail by which a link went out
INSERT INTO email_attempts (batch_id, position, pack_sharing_id, message, begun_at, outcome, answered_at)
SELECT pg_temp.make_id('batch', c), 1, pg_temp.make_id('sharing', c), '{}', pg_temp.at(pg_temp.today() - 5, 12), 'accepted',
       pg_temp.at(pg_temp.today() - 5, 12)
FROM generate_series(1, pg_temp.companies()) AS c
