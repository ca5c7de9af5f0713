-- the function of a trigger that refuses every row it is called for
CREATE FUNCTION refuse_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514';
END
$$
