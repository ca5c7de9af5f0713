-- one row: when the platform took the database over; none if it made the database
SELECT at FROM baseline WHERE name = 'adoption'
