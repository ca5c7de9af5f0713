# The platform's image: one for all of Airflow's processes; docker-compose.yaml says which runs where.
FROM python:3.12.12-slim-bookworm

# Zone data comes from the pinned package alone. Runs as a number without a name, so the name is said here.
ENV PYTHONTZPATH="" \
    PYTHONUNBUFFERED=1 \
    PYTHONPATH=/opt/almanac:/opt/almanac/plugins \
    PATH=/opt/almanac/.venv/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/almanac \
    USER=almanac \
    ALMANAC_HOME=/var/lib/almanac \
    AIRFLOW_HOME=/var/lib/almanac/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/almanac/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/almanac/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__CORE__TEST_CONNECTION=Enabled \
    AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=False

WORKDIR /opt/almanac

# First what changes seldom.
COPY requirements.txt ./
COPY stack/bootstrap.sh stack/
RUN sh stack/bootstrap.sh python3 .venv && rm -rf /var/lib/almanac/.cache

COPY airflow_settings.yaml ./
COPY include include
COPY stack stack
COPY plugins plugins
COPY dags dags

# What is written lies in one folder, which the group 0 may write: volumes take its rights over.
RUN mkdir -p -m 0770 /var/lib/almanac/airflow /var/lib/almanac/logs /var/lib/almanac/outbox /var/lib/almanac/storage

USER 50000:0

CMD ["airflow", "api-server"]
