-- a row is a browser of a company's owner
INSERT INTO push_subscriptions (id, user_id, endpoint, p256dh, auth)
SELECT pg_temp.make_id('push', c), pg_temp.make_id('user', 9 * c - 8),
       'https://push.example/' || pg_temp.make_id('endpoint', c), md5('p256dh' || c), md5('auth' || c)
FROM generate_series(1, pg_temp.companies()) AS c
