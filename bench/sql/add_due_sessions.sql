-- a row is an active session of its own customer, begun long enough ago for a mail
INSERT INTO test_sessions (
    id, user_id, status, clearpath_order_id, kit_serial_number, address, activated_at, expected_completion_date
)
SELECT md5('bench session ' || n)::uuid,
       md5('bench user ' || n)::uuid,
       'active',
       'CPO-' || n,
       'KIT-' || n,
       n || ' Jasper Avenue, Edmonton, AB',
       now() - interval '30 days 1 hour',
       current_date + 61
FROM generate_series(1, CAST(:mails AS integer)) AS n
