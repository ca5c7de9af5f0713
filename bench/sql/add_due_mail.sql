-- a row is a mail that is due, one a session, of the five kinds in turn
INSERT INTO email_log (id, user_id, test_session_id, email_type, scheduled_at)
SELECT md5('bench mail ' || n)::uuid,
       md5('bench user ' || n)::uuid,
       md5('bench session ' || n)::uuid,
       (ARRAY['day_30', 'day_60', 'day_80', 'day_88', 'results_prompt'])[1 + n % 5],
       now() - interval '1 hour' + n * interval '1 millisecond'
FROM generate_series(1, CAST(:mails AS integer)) AS n
