-- Once a cluster: roles belong to all its databases, and another one may be making the same role now.
DO $role$
BEGIN
    CREATE ROLE {role} NOLOGIN;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$role$
