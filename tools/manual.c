/* tools/manual.c: prints the manual page heddle(1): what the commands' tables say, and a frame of text around it. */
#include "manual.h"

#include <stdio.h>
#include <string.h>

#include "heddle/status.h"
#include "options.h"

/* Text in which no character means something to roff. */
static void plain(const char *text) {
  for (bool starts = true; *text != '\0'; text++) {
    if (*text == '\\') fputs("\\e", stdout);
    else if (*text == '-') fputs("\\-", stdout);
    else if (*text == '\'') fputs("\\(aq", stdout);
    else if (starts && *text == '.') fputs("\\&.", stdout);
    else putchar(*text);
    starts = *text == '\n';
  }
}

static void option_text(const option *o) {
  fputs(".TP\n.BR ", stdout);
  plain("--");
  plain(o->name);
  if (o->value != NULL) {
    fputs(" \" \\fI", stdout);
    plain(o->value);
    fputs("\\fP\"", stdout);
  }
  putchar('\n');
  plain(o->help);
  if (o->kind == OPTION_PAIRS || o->kind == OPTION_RULES || o->kind == OPTION_WORDS) fputs("; may be repeated", stdout);
  fputs(".\n", stdout);
}

static void command_text(const command *c) {
  static const char *const words[] = {
      "", " \\fIMODEL\\fP", " \\fIPLUGIN\\fP", " \\fIMODEL\\fP...", " \\fIFILE\\fP", " new|public \\fIFILE\\fP"};
  fputs(".SS \"heddle ", stdout);
  plain(c->name);
  printf("%s [\\fIOPTION\\fP]...\"\n", words[c->takes]);
  plain(c->description);
  putchar('\n');
  for (const option *o = c->known; o->name != NULL; o++) option_text(o);
}

static const char before[] = ".SH NAME\n"
                             "heddle \\- runs a model on several kinds of processor at once\n"
                             ".SH SYNOPSIS\n"
                             ".B heddle\n"
                             ".I COMMAND\n"
                             ".RI [ WORD ]...\n"
                             ".br\n"
                             ".B heddle help\n"
                             ".RI [ COMMAND ]\n"
                             ".br\n"
                             ".B heddle \\-\\-version\n"
                             ".SH DESCRIPTION\n"
                             "Reads a model, places each of its nodes on one of the devices that plugins offer (cpu, "
                             "opencl, vulkan, cuda, rocm,\n"
                             "others), and plans, runs, times or compares it.\n"
                             ".PP\n"
                             ".I MODEL\n"
                             "is a graph's .json file, with its .params beside it; an .onnx file; or a library that "
                             "TVM compiled, which holds a\n"
                             "model. A device is written as a plugin and a number, such as vulkan:0; a list of devices "
                             "has commas between, in order\n"
                             "of preference. The value of an option is the next word, or stands behind \\(oq=\\(cq; "
                             "\\(oq\\-\\-\\(cq ends the options.\n"
                             ".SH COMMANDS\n";

static const char after[] =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nDone.\n"
    ".TP\n.B 1\nThe work failed; the message on standard error names file, node and device.\n"
    ".TP\n.B 2\nThe words were wrong.\n"
    ".SH ENVIRONMENT\n"
    "A setting NAME is also read from the variable HEDDLE_NAME, in capitals and with \\(oq_\\(cq for \\(oq.\\(cq, "
    "unless "
    "an\n"
    "option gives it.\n"
    ".TP\n.B HEDDLE_DEVICES\nThe devices that may be used, in order of preference.\n"
    ".TP\n.B HEDDLE_PLUGINS\nWhere plugins are looked for, and nowhere else: folders, libraries or manifests, with\n"
    "\\(oq:\\(cq between.\n"
    ".TP\n.B HEDDLE_PLUGIN_PATH\nThe same, looked through after the usual folders.\n"
    ".TP\n.B HEDDLE_CONFIG\nThe configuration file; off reads none.\n"
    ".TP\n.B HEDDLE_LOG\noff, error, warn, info, debug or trace.\n"
    ".TP\n.B HEDDLE_TRUST\nThe trust file whose keys must have signed every file of a model that is loaded.\n"
    ".TP\n.B HEDDLE_KEY_FILE, HEDDLE_KEY\nThe file of the key of encrypted files; its text.\n"
    ".SH FILES\n"
    ".TP\n.I $XDG_CONFIG_HOME/heddle/config.json\nThe configuration file, else the one under ~/.config, else the\n"
    "system\\(aqs.\n"
    ".TP\n.I $XDG_CACHE_HOME/heddle\nWhat drivers compiled and what was found out about plugins and routes; it may be\n"
    "deleted at any time.\n"
    ".SH EXAMPLES\n"
    ".TP\nWhat is here, and why what is not is not:\n.B heddle devices \\-\\-all\n"
    ".TP\nA run on made-up inputs, with a table of where the time goes:\n"
    ".B heddle run model.onnx \\-\\-device vulkan:0,cpu \\-\\-random \\-\\-profile\n"
    ".TP\nThe first node that a device computes wrongly:\n"
    ".B heddle compare model.onnx \\-\\-a cpu \\-\\-b opencl:0 \\-\\-random\n";

int print_manual(int n, char **words) {
  if (n > 0) {
    fprintf(stderr, "heddle man: '%s' is one word too many\n", words[0]);
    return WRONG_WORDS;
  }
  printf(".\\\" Made by \"heddle man\" from the tool's own tables.\n");
  printf(".TH HEDDLE 1 \"\" \"heddle %s\" \"Heddle\"\n", heddle_version());
  fputs(before, stdout);
  for (const command *const *c = all_commands; *c != NULL; c++) command_text(*c);
  fputs(after, stdout);
  return DONE;
}
