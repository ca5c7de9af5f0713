-- The login of the migrations and of the jobs may be either; a superuser is already.
DO $member$
BEGIN
    IF NOT pg_has_role(current_user, {role_word}, 'USAGE') THEN
        GRANT {role} TO CURRENT_USER;
    END IF;
END
$member$
