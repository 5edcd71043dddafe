/* completion_fish.c - the completion for fish, with a line of help beside each word. */
#include <string.h>

#include "cli/completion_parts.h"

static void put_word(FILE *file, const char *words, const char *word, int len,
                     const char *help)
{
    fprintf(file, "complete -c holdfast -n '__holdfast_after%s' -a %.*s -d '", words, len,
            word);
    hf_put_help(file, word, len, help, "\\'", "\\");
    fputs("'\n", file);
}

static void put_first(FILE *file, const char *word, int len, const char *help)
{
    put_word(file, "", word, len, help);
    put_word(file, " help", word, len, help);
}

static void put_group(FILE *file, const char *group)
{
    char words[48];
    size_t len = strlen(group);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (c->hidden || strncmp(c->name, group, len) != 0 || c->name[len] != ' ')
            continue;
        const char *word = c->name + len + 1;
        snprintf(words, sizeof words, " %s", group);
        put_word(file, words, word, (int)strlen(word), c->help);
        snprintf(words, sizeof words, " help %s", group);
        put_word(file, words, word, (int)strlen(word), c->help);
    }
}

static void put_options(FILE *file, const char *command, const hf_opt *opts)
{
    for (const hf_opt *o = hf_listed(opts); o != NULL; o = hf_listed(o + 1)) {
        fputs("complete -c holdfast", file);
        if (command != NULL)
            fprintf(file, " -n '__holdfast_in %s'", command);
        fprintf(file, " -l %s", o->name);
        if (o->letter != 0)
            fprintf(file, " -s %c", o->letter);
        if (hf_takes_file(o))
            fputs(" -r -F", file);
        else if (o->kind != HF_OPT_FLAG)
            fputs(" -x", file);
        if (o->kind == HF_OPT_CHOICE) {
            fputs(" -a '", file);
            hf_put_choices(file, o->choices);
            fputc('\'', file);
        }
        fputs(" -d '", file);
        hf_put_help(file, "", 0, o->help, "\\'", "\\");
        fputs("'\n", file);
    }
}

static void put_valued(FILE *file)
{
    fputs("# The options of a command that take a value.\n"
          "function __holdfast_valued\n"
          "    printf '%s\\n'",
          file);
    hf_put_names(file, hf_common_opts(), true);
    fputs("\n    switch \"$argv\"\n", file);
    for (const hf_command *c = hf_with_options(hf_commands()); c != NULL;
         c = hf_with_options(c + 1)) {
        fprintf(file, "        case '%s' '%s *'\n            printf '%%s\\n'", c->name,
                c->name);
        hf_put_names(file, c->opts, true);
        fputc('\n', file);
    }
    fputs("    end\nend\n\n", file);
}

static const char walk[] =
    "# The words of the command so far, without options and their values.\n"
    "function __holdfast_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l command\n"
    "    set -l skip no\n"
    "    set -e words[1]\n"
    "    for word in $words\n"
    "        if test $skip = yes\n"
    "            set skip no\n"
    "        else if contains -- $word (__holdfast_valued $command)\n"
    "            set skip yes\n"
    "        else if not string match -q -- '-*' $word\n"
    "            set -a command $word\n"
    "        end\n"
    "    end\n"
    "    echo \"$command\"\n"
    "end\n\n"
    "function __holdfast_after # exactly these words\n"
    "    set -l words (__holdfast_words)\n"
    "    test \"$words\" = \"$argv\"\n"
    "end\n\n"
    "function __holdfast_in # these words, and perhaps operands\n"
    "    set -l words (__holdfast_words)\n"
    "    test \"$words\" = \"$argv\"; or string match -q -- \"$argv *\" \"$words\"\n"
    "end\n\n"
    "complete -c holdfast -f\n";

void hf_put_fish(FILE *file)
{
    fputs("# fish completion for holdfast, made by `holdfast help --completion fish`\n\n",
          file);
    put_valued(file);
    fputs(walk, file);
    put_options(file, NULL, hf_common_opts());
    hf_each_word(file, "", put_first);
    hf_each_group(file, put_group);
    for (const hf_command *c = hf_with_options(hf_commands()); c != NULL;
         c = hf_with_options(c + 1))
        put_options(file, c->name, c->opts);
}
