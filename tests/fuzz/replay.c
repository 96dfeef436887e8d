/* Runs a fuzz target once over each file of the folders or files named, where there is no libFuzzer: its seeds are then
 * an ordinary test. Exit 77 where there is no seed at all. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replayed;

static int replay_file(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  FILE *file = fopen(path, "rb");
  uint8_t *bytes = malloc(info.st_size > 0 ? (size_t)info.st_size : 1);
  int failed = file == NULL || bytes == NULL;
  if (!failed) {
    size_t size = fread(bytes, 1, (size_t)info.st_size, file);
    LLVMFuzzerTestOneInput(bytes, size);
    replayed++;
  }
  if (file != NULL) fclose(file);
  free(bytes);
  if (failed) fprintf(stderr, "cannot read %s\n", path);
  return failed;
}

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++) {
    DIR *folder = opendir(argv[i]);
    if (folder == NULL) {
      failed |= replay_file(argv[i]);
      continue;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
      char path[4096];
      if (snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name) < (int)sizeof path) failed |= replay_file(path);
    }
    closedir(folder);
  }
  printf("%d inputs\n", replayed);
  if (failed) return 1;
  return replayed > 0 ? 0 : 77;
}
