-- a row is a job whose attempt has failed, with where in the code
UPDATE background_jobs SET error_stack = :stack WHERE id = :id
