/* tools/main.c: the tool's front door. It finds the command, lets options.c read the rest, and sees to it that what was
 * printed has arrived. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/status.h"
#include "heddle/text.h"
#include "completion.h"
#include "manual.h"
#include "objects.h"
#include "options.h"
#include "text.h"

const command *const all_commands[] = {
    &devices_command,      &info_command,          &plan_command,        &run_command,
    &bench_command,        &compare_command,       &convert_command,     &quantize_command,
    &generate_command,     &pack_command,          &unpack_command,      &link_command,
    &key_command,          &sign_command,          &verify_command,      &decrypt_command,
    &check_plugin_command, &rpc_server_command,    &rpc_tracker_command, &rpc_proxy_command,
    &rpc_tunnel_command,   &device_server_command, &keys_command,        NULL};
enum { N_COMMANDS = sizeof all_commands / sizeof all_commands[0] - 1 };

static void usage(FILE *out) {
  print_to(out, "heddle COMMAND [WORD]...\n\n");
  for (int i = 0; i < N_COMMANDS; i++) print_to(out, "  %-12s  %s\n", all_commands[i]->name, all_commands[i]->summary);
  print_to(out, "  %-12s  %s\n\n", "help", "what a command does and takes; so does heddle COMMAND --help");
  print_to(out,
           "heddle --version prints the version. Exit status: 0 done, 1 the work failed, 2 the words were wrong.\n");
}

static const command *find_command(const char *name) {
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(all_commands[i]->name, name) == 0) return all_commands[i];
  return NULL;
}

static int no_such(const char *name) {
  const char *names[N_COMMANDS + 1];
  for (int i = 0; i < N_COMMANDS; i++) names[i] = all_commands[i]->name;
  names[N_COMMANDS] = "help";
  const char *near = heddle_text_nearest(name, names, N_COMMANDS + 1);
  print_error("heddle: there is no command '%s'", name);
  if (near != NULL) print_error("; did you mean %s?", near);
  print_error("\n(heddle help lists them)\n");
  return WRONG_WORDS;
}

static int help(int argc, char **argv) {
  if (argc == 0) {
    usage(stdout);
    return DONE;
  }
  const command *c = find_command(argv[0]);
  if (c == NULL && strcmp(argv[0], "help") != 0) return no_such(argv[0]);
  if (argc > 1) {
    print_error("heddle help: '%s' is one word too many\n", argv[1]);
    return WRONG_WORDS;
  }
  if (c != NULL) options_help(c);
  else usage(stdout);
  return DONE;
}

/* Runs a command; a model and a library that are objects are linked first. */
static int run_one(const command *c, options *o) {
  char *model = NULL, *lib = NULL;
  int status = DONE;
  /* Every way of loading looks there. */
  if ((o->trust != NULL && setenv("HEDDLE_TRUST", o->trust, 1) != 0) ||
      (o->key != NULL && setenv("HEDDLE_KEY_FILE", o->key, 1) != 0))
    return FAILED;
  if (c->takes == SUBJECT_MODEL && objects_are(o->model)) {
    model = objects_link(c->name, o->model);
    if (model == NULL) status = FAILED;
    else o->model = model;
  }
  if (status == DONE && objects_are(o->lib)) {
    lib = objects_link(c->name, o->lib);
    if (lib == NULL) status = FAILED;
    else o->lib = lib;
  }
  if (status == DONE) status = c->run(o);
  free(lib);
  free(model);
  return status;
}

static int run_tool(int argc, char **argv) {
  if (argc < 2) {
    usage(stderr);
    return WRONG_WORDS;
  }
  if (strcmp(argv[1], "help") == 0) return help(argc - 2, argv + 2);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return help(0, NULL);
  if (strcmp(argv[1], "--version") == 0) {
    print("heddle %s\n", heddle_version());
    return DONE;
  }
  if (strcmp(argv[1], "complete") == 0) return complete_words(argc - 2, argv + 2);
  if (strcmp(argv[1], "man") == 0) return print_manual(argc - 2, argv + 2);
  const command *c = find_command(argv[1]);
  if (c == NULL) return no_such(argv[1]);
  options o;
  int status = options_parse(c, argc - 2, argv + 2, &o);
  if (status == DONE && o.help) options_help(c);
  else if (status == DONE) status = run_one(c, &o);
  options_finish(c, &o);
  return status;
}

int main(int argc, char **argv) {
  /* A reader that goes away (head) makes writing fail, which is reported like any other failure. */
  signal(SIGPIPE, SIG_IGN);
  int status = run_tool(argc, argv);
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == DONE) {
    if (errno != EPIPE) print_error("heddle: cannot write the output: %s\n", strerror(errno));
    status = FAILED;
  }
  return status;
}
