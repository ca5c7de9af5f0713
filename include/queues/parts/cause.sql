-- cut before, since all of a long error would take its time, and after, so that what was left out counts nowhere
left(
    regexp_replace(
        regexp_replace(
            regexp_replace(
                regexp_replace(
                    left(coalesce(q.{error}, ''), 300),
                    '[^\s<>"''(][^\s<>"(]*@[^\s<>"''),;:]+', '(address)', 'g'
                ),
                '[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}', '(id)', 'g'
            ),
            '\d+', '#', 'g'
        ),
        -- a single space stays: to replace each of them by itself is what would cost most
        '\s\s+|[^\S ]', ' ', 'g'
    ),
    160
)
