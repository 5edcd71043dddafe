/* completion_bash.c - the completion for bash. It needs nothing of the package
 * bash-completion. */
#include <string.h>

#include "cli/completion_parts.h"

static void put_word(FILE *file, const char *word, int len, const char *help)
{
    (void)help;
    fprintf(file, " %.*s", len, word);
}

static void put_group(FILE *file, const char *group)
{
    fprintf(file, "    '%s' | 'help %s') commands='", group, group);
    hf_each_word(file, group, put_word);
    fputs("' ;;\n", file);
}

static void put_commands(FILE *file)
{
    fputs("# What may follow the words of a command: more words, options, and those of "
          "them\n"
          "# that take a value.\n"
          "_holdfast_know()\n{\n    commands=''\n    options='",
          file);
    hf_put_names(file, hf_common_opts(), false);
    fputs("'\n    valued='", file);
    hf_put_names(file, hf_common_opts(), true);
    fputs(" '\n    case $1 in\n    '' | 'help') commands='", file);
    hf_each_word(file, "", put_word);
    fputs("' ;;\n", file);
    hf_each_group(file, put_group);
    for (const hf_command *c = hf_with_options(hf_commands()); c != NULL;
         c = hf_with_options(c + 1)) {
        fprintf(file, "    '%s')\n        options+='", c->name);
        hf_put_names(file, c->opts, false);
        fputs("'\n        valued+='", file);
        hf_put_names(file, c->opts, true);
        fputs(" '\n        ;;\n", file);
    }
    fputs("    esac\n}\n\n", file);
}

/* The arms of a case over "<command> <option>". */
static void put_values(FILE *file)
{
    for (const hf_opt *o = hf_listed(hf_common_opts()); o != NULL; o = hf_listed(o + 1)) {
        if (hf_takes_file(o) && o->letter != 0)
            fprintf(file, "    *' -%c') return ;;\n", o->letter);
        if (hf_takes_file(o))
            fprintf(file, "    *' --%s') return ;;\n", o->name);
    }
    for (const hf_command *c = hf_with_options(hf_commands()); c != NULL;
         c = hf_with_options(c + 1)) {
        for (const hf_opt *o = hf_listed(c->opts); o != NULL; o = hf_listed(o + 1)) {
            if (hf_takes_file(o))
                fprintf(file, "    '%s --%s') return ;;\n", c->name, o->name);
            if (o->kind != HF_OPT_CHOICE)
                continue;
            fprintf(file, "    '%s --%s') words='", c->name, o->name);
            hf_put_choices(file, o->choices);
            fputs("' ;;\n", file);
        }
    }
}

static const char walk[] =
    "_holdfast()\n"
    "{\n"
    "    local IFS=$' \\t\\n' command='' words='' commands options valued i\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    COMPREPLY=()\n"
    "    # To bash \"=\" is a word of its own.\n"
    "    if [[ $word == '=' ]]; then\n"
    "        word=''\n"
    "    elif [[ $before == '=' ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    _holdfast_know ''\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --) return ;; # what follows is not ours\n"
    "        -*)\n"
    "            if [[ $valued == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "                if [[ ${COMP_WORDS[i + 1]} == '=' ]]; then ((i++)); fi\n"
    "                ((i++))\n"
    "            fi\n"
    "            ;;\n"
    "        *)\n"
    "            if [[ -n $commands ]]; then\n"
    "                command+=\"${command:+ }${COMP_WORDS[i]}\"\n"
    "                _holdfast_know \"$command\"\n"
    "            fi\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    case \"$command $before\" in # to return is to complete names of files\n";

void hf_put_bash(FILE *file)
{
    fputs("# bash completion for holdfast, made by `holdfast help --completion bash`\n\n",
          file);
    put_commands(file);
    fputs(walk, file);
    put_values(file);
    fputs("    *)\n"
          "        if [[ $valued == *\" $before \"* ]]; then\n"
          "            words='' # nothing is known of it\n"
          "        elif [[ $word == -* ]]; then\n"
          "            words=$options\n"
          "        else\n"
          "            words=$commands\n"
          "        fi\n"
          "        ;;\n"
          "    esac\n"
          "    compopt +o default 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "}\n\n"
          "complete -o default -F _holdfast holdfast\n",
          file);
}
