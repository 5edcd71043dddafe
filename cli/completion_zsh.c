/* completion_zsh.c - the completion for zsh, with a line of help beside each word. */
#include <string.h>

#include "cli/completion_parts.h"

static void put_word(FILE *file, const char *word, int len, const char *help)
{
    fprintf(file, "\n        '%.*s:", len, word);
    hf_put_help(file, word, len, help, "'\\''", "");
    fputc('\'', file);
}

static void put_group(FILE *file, const char *group)
{
    fprintf(file, "    ('%s' | 'help %s')\n        commands=(", group, group);
    hf_each_word(file, group, put_word);
    fputs(")\n        ;;\n", file);
}

/* One form of an option as _arguments wants it: "-q+[...]" or "--queue=[...]". */
static void put_option(FILE *file, const hf_opt *opt, bool is_short)
{
    bool valued = opt->kind != HF_OPT_FLAG;
    fputs("\n        '", file);
    if (opt->many)
        fputc('*', file);
    else if (opt->letter != 0)
        fprintf(file, "(-%c --%s)", opt->letter, opt->name);
    if (is_short)
        fprintf(file, "-%c%s[", opt->letter, valued ? "+" : "");
    else
        fprintf(file, "--%s%s[", opt->name, valued ? "=" : "");
    hf_put_help(file, "", 0, opt->help, "'\\''", "[]\\");
    fputc(']', file);
    if (valued)
        fprintf(file, ":%s:", opt->value);
    if (opt->kind == HF_OPT_CHOICE) {
        fputc('(', file);
        hf_put_choices(file, opt->choices);
        fputc(')', file);
    } else if (valued) {
        fputs(hf_takes_file(opt) ? "_files" : " ", file);
    }
    fputc('\'', file);
}

static void put_options(FILE *file, const hf_opt *opts)
{
    for (const hf_opt *o = hf_listed(opts); o != NULL; o = hf_listed(o + 1)) {
        if (o->letter != 0)
            put_option(file, o, true);
        put_option(file, o, false);
    }
}

static void put_commands(FILE *file)
{
    fputs("# What may follow the words of a command: more words, options, and those of "
          "them\n"
          "# that take a value.\n"
          "_holdfast_know() {\n    commands=()\n    options=(",
          file);
    put_options(file, hf_common_opts());
    fputs(")\n    valued='", file);
    hf_put_names(file, hf_common_opts(), true);
    fputs(" '\n    case $1 in\n    ('' | 'help')\n        commands=(", file);
    hf_each_word(file, "", put_word);
    fputs(")\n        ;;\n", file);
    hf_each_group(file, put_group);
    for (const hf_command *c = hf_with_options(hf_commands()); c != NULL;
         c = hf_with_options(c + 1)) {
        fprintf(file, "    ('%s')\n        options+=(", c->name);
        put_options(file, c->opts);
        fputs(")\n        valued+='", file);
        hf_put_names(file, c->opts, true);
        fputs(" '\n        ;;\n", file);
    }
    fputs("    esac\n}\n\n", file);
}

static const char walk[] =
    "_holdfast() {\n"
    "    local command='' valued\n"
    "    local -a commands options\n"
    "    local -i i\n"
    "    _holdfast_know ''\n"
    "    for ((i = 2; i < CURRENT; i++)); do\n"
    "        case $words[i] in\n"
    "        (--) _default; return ;; # what follows is not ours\n"
    "        (-*) [[ $valued == *\" $words[i] \"* ]] && i+=1 ;;\n"
    "        (*)\n"
    "            if (($#commands)); then\n"
    "                command+=\"${command:+ }$words[i]\"\n"
    "                _holdfast_know \"$command\"\n"
    "            fi\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    # Past CURRENT: the word at the cursor is an option's value.\n"
    "    if ((i == CURRENT && $#commands)) && [[ $words[CURRENT] != -* ]]; then\n"
    "        _describe command commands\n"
    "    else\n"
    "        _arguments -S $options '*:operand: '\n"
    "    fi\n"
    "}\n\n"
    "_holdfast \"$@\"\n";

void hf_put_zsh(FILE *file)
{
    fputs("#compdef holdfast\n"
          "# zsh completion for holdfast, made by `holdfast help --completion zsh`\n\n",
          file);
    put_commands(file);
    fputs(walk, file);
}
