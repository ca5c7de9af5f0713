ALTER TABLE notifications ADD COLUMN IF NOT EXISTS status_reason TEXT
