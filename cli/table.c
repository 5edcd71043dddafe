/* table.c - see table.h. */
#include "cli/table.h"

#include <string.h>

bool hf_words_have(const char *words, const char *word, size_t len)
{
    while (words != NULL) {
        size_t here = strcspn(words, "|");
        if (here == len && memcmp(words, word, len) == 0)
            return true;
        words = words[here] == '\0' ? NULL : words + here + 1;
    }
    return false;
}

/* ---- commands ---- */

const hf_command *hf_command_find(const hf_command *commands, const char *name)
{
    for (; commands->name != NULL; commands++) {
        if (strcmp(commands->name, name) == 0 ||
            (commands->also != NULL && strcmp(commands->also, name) == 0))
            return commands;
    }
    return NULL;
}

static const char *after(const char *name, const char *path)
{
    size_t len = strlen(path);
    if (name == NULL || strncmp(name, path, len) != 0 || name[len] != ' ')
        return NULL;
    return name + len + 1;
}

const char *hf_command_after(const hf_command *command, const char *path)
{
    if (*path == '\0')
        return command->name;
    const char *rest = after(command->name, path);
    return rest != NULL ? rest : after(command->also, path);
}

bool hf_command_group(const hf_command *commands, const char *path)
{
    for (; commands->name != NULL; commands++) {
        if (!commands->hidden && hf_command_after(commands, path) != NULL)
            return true;
    }
    return false;
}

/* ---- options ---- */

static bool is_called(const hf_opt *opt, const char *name, size_t len)
{
    return hf_words_have(opt->name, name, len) || hf_words_have(opt->also, name, len);
}

static const hf_opt *find_in(const hf_opt *opts, const char *name, size_t len,
                             char letter)
{
    for (; opts != NULL && opts->name != NULL; opts++) {
        if (letter != 0 ? opts->letter == letter : is_called(opts, name, len))
            return opts;
    }
    return NULL;
}

const hf_opt *hf_opt_find(const hf_command *command, const char *name, size_t len,
                          char letter)
{
    const hf_opt *found = NULL;
    if (command != NULL)
        found = find_in(command->opts, name, len, letter);
    return found != NULL ? found : find_in(hf_common_opts(), name, len, letter);
}
