-- a row is an active contractor whose certification ends within the window or has ended
SELECT c.id
FROM contractors AS c
WHERE c.status = 'active'
  AND c.cnrpp_expiry_date <= :last_day
  AND (
      c.cnrpp_expiry_date < :today
      OR (
          coalesce(c.last_cnrpp_alert_sent_at, '-infinity') < :month_start
          AND NOT EXISTS (
              SELECT 1 FROM cnrpp_alerts AS a WHERE a.contractor_id = c.id AND a.alert_month >= :month
          )
      )
  )
ORDER BY c.id
