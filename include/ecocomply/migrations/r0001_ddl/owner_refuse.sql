IF NEW.company_id IS DISTINCT FROM found.company_id THEN
            RAISE EXCEPTION '%: % % is not of company %', {table_word}, {column_word}, NEW.{column}, NEW.company_id
                USING ERRCODE = 'foreign_key_violation';
        END IF;
