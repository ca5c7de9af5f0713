CREATE OR REPLACE TRIGGER background_job_status AFTER INSERT OR UPDATE OF status, progress ON background_jobs
FOR EACH ROW EXECUTE FUNCTION background_job_status()
