CREATE OR REPLACE TRIGGER background_job_kept BEFORE INSERT OR UPDATE ON background_jobs
FOR EACH ROW EXECUTE FUNCTION background_job_kept()
