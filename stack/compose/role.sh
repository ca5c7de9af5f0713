#!/bin/sh
# Run once by the Postgres image over an empty volume: the role that owns every database, which is no superuser.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$ALMANAC_DB_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'EOSQL'
CREATE ROLE almanac LOGIN CREATEDB CREATEROLE PASSWORD :'password';
CREATE DATABASE airflow OWNER almanac;
EOSQL
