-- what the functions below read, until the transaction ends
SELECT set_config('almanac.generator_seed', :seed, true),
       set_config('almanac.generator_today', :today, true),
       set_config('almanac.generator_companies', :companies, true),
       set_config('almanac.generator_obligations', :obligations, true)
