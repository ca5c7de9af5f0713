IF NEW.{column} IS NOT NULL THEN
        SELECT p.company_id{site_too} INTO found FROM {parent} AS p WHERE p.id = NEW.{column};
        NEW.company_id := coalesce(NEW.company_id, found.company_id);
        {take_site}
        {refuse_others}
    END IF;
