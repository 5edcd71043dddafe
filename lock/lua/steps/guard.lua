-- guard.lua - the first command of each script reads two keys that never exist: see queue/lua/steps/guard.lua.
call('EXISTS', P, P .. '/')
