/* completion.c - see completion.h and completion_parts.h. */
#include "cli/completion.h"

#include <string.h>

#include "cli/completion_parts.h"

/* Whether no command before this one begins with the same word. */
static bool is_first(const hf_command *command, size_t len)
{
    for (const hf_command *c = hf_commands(); c != command; c++) {
        if (!c->hidden && strncmp(c->name, command->name, len + 1) == 0)
            return false;
    }
    return true;
}

void hf_each_word(FILE *file, const char *before, hf_on_word fn)
{
    size_t skip = strlen(before);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        const char *word = c->name;
        if (c->hidden || strncmp(word, before, skip) != 0)
            continue;
        if (skip > 0 && *(word += skip) != ' ')
            continue;
        word += skip > 0 ? 1 : 0;
        size_t len = strcspn(word, " ");
        if (word[len] == '\0')
            fn(file, word, (int)len, c->help);
        else if (is_first(c, len))
            fn(file, word, (int)len, NULL);
    }
}

void hf_each_group(FILE *file, void (*fn)(FILE *file, const char *group))
{
    char group[32];
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        size_t len = strcspn(c->name, " ");
        if (c->hidden || c->name[len] == '\0' || !is_first(c, len))
            continue;
        snprintf(group, sizeof group, "%.*s", (int)len, c->name);
        fn(file, group);
    }
}

const hf_opt *hf_listed(const hf_opt *opt)
{
    while (opt != NULL && opt->name != NULL && opt->hidden)
        opt++;
    return opt != NULL && opt->name != NULL ? opt : NULL;
}

const hf_command *hf_with_options(const hf_command *command)
{
    for (; command->name != NULL; command++) {
        if (!command->hidden && hf_listed(command->opts) != NULL &&
            strcmp(command->name, "help") != 0)
            return command;
    }
    return NULL;
}

bool hf_takes_file(const hf_opt *opt)
{
    return opt->value != NULL && strncmp(opt->value, "FILE", 4) == 0;
}

void hf_put_names(FILE *file, const hf_opt *opts, bool valued)
{
    for (const hf_opt *o = hf_listed(opts); o != NULL; o = hf_listed(o + 1)) {
        if (valued && o->kind == HF_OPT_FLAG)
            continue;
        fprintf(file, " --%s", o->name);
        if (o->letter != 0)
            fprintf(file, " -%c", o->letter);
    }
}

void hf_put_choices(FILE *file, const char *choices)
{
    for (; *choices != '\0'; choices++)
        fputc(*choices == '|' ? ' ' : *choices, file);
}

static void put_second_words(FILE *file, const char *word, int len)
{
    const char *comma = "";
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (c->hidden || strncmp(c->name, word, (size_t)len) != 0 || c->name[len] != ' ')
            continue;
        fprintf(file, "%s%s", comma, c->name + len + 1);
        comma = ", ";
    }
}

void hf_put_help(FILE *file, const char *word, int len, const char *help,
                 const char *quote, const char *escaped)
{
    if (help == NULL) {
        put_second_words(file, word, len);
        return;
    }
    for (; *help != '\0' && *help != ';' && *help != '\n'; help++) {
        if (*help == '\'')
            fputs(quote, file);
        else
            fprintf(file, "%s%c", strchr(escaped, *help) != NULL ? "\\" : "", *help);
    }
}

void hf_completion(FILE *file, int64_t shell)
{
    if (shell == HF_SHELL_BASH)
        hf_put_bash(file);
    else if (shell == HF_SHELL_ZSH)
        hf_put_zsh(file);
    else
        hf_put_fish(file);
}
