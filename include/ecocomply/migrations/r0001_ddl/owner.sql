-- A row belongs to the company of what it names: taken from there if an insert leaves it out, refused if it differs.
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $owner$
DECLARE
    found record;
BEGIN
    {parents}
    RETURN NEW;
END
$owner$
