-- a row is yesterday's digest of a company's last but one
INSERT INTO digests (id, user_id, frequency, period_start, status, sent_at, unsubscribe_token)
SELECT pg_temp.make_id('digest', c), pg_temp.make_id('user', 9 * c - 1), 'DAILY', pg_temp.today() - 1, 'sent',
       pg_temp.at(pg_temp.today() - 1, 7), pg_temp.make_id('digest token', c)
FROM generate_series(1, pg_temp.companies()) AS c
