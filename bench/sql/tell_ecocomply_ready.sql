-- a row is a notification that lies ready, told to the same people by the same words
INSERT INTO notifications SELECT * FROM ready_notifications
