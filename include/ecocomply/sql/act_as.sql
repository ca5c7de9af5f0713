-- a row is the role that the transaction has from here on, and for whom
SELECT set_config('almanac.user_id', coalesce(:user_id, ''), true),
       set_config('almanac.company_id', coalesce(:company_id, ''), true),
       -- statements come a chunk at a time, and compiling one takes longer than its chunk
       set_config('jit', 'off', true),
       set_config('role', :role, true)
