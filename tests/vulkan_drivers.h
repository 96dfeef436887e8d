/* tests/vulkan_drivers.h: two devices of lavapipe's, Mesa's Vulkan driver for the host's cores. The loader shows a driver
 * once for each manifest, so a copy of lavapipe's under another name is a second device. */
#ifndef HEDDLE_TESTS_VULKAN_DRIVERS_H
#define HEDDLE_TESTS_VULKAN_DRIVERS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path of lavapipe's manifest in the folders where the loader looks. */
static inline int vulkan_manifest(char *out, size_t bytes) {
  const char *given = getenv("XDG_DATA_DIRS");
  char folders[2048];
  snprintf(folders, sizeof folders, "/etc:%s",
           given != NULL && given[0] != '\0' ? given : "/usr/local/share:/usr/share");
  for (char *rest = NULL, *folder = strtok_r(folders, ":", &rest); folder != NULL;
       folder = strtok_r(NULL, ":", &rest)) {
    char path[1024];
    snprintf(path, sizeof path, "%s/vulkan/icd.d", folder);
    DIR *dir = opendir(path);
    for (struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
      if (strncmp(e->d_name, "lvp_icd", 7) != 0) continue;
      const int n = snprintf(out, bytes, "%s/%s", path, e->d_name);
      closedir(dir);
      return n > 0 && (size_t)n < bytes;
    }
    if (dir != NULL) closedir(dir);
  }
  return 0;
}

/* Sets VK_DRIVER_FILES to two manifests, the second one a copy in the build tree. NULL, or why that cannot be. */
static inline const char *vulkan_two_devices(const char *build) {
  char manifest[1024], folder[1024], copy[1200], aside[1300], text[4096], files[2400];
  if (!vulkan_manifest(manifest, sizeof manifest)) return "lavapipe (mesa-vulkan-drivers) is not installed";
  snprintf(folder, sizeof folder, "%s/tests", build);
  mkdir(folder, 0777);
  snprintf(copy, sizeof copy, "%s/second_lvp_icd.json", folder);
  snprintf(aside, sizeof aside, "%s.%ld", copy, (long)getpid());
  FILE *in = fopen(manifest, "r"), *out = in != NULL ? fopen(aside, "w") : NULL;
  const size_t n = in != NULL ? fread(text, 1, sizeof text, in) : 0;
  int done = out != NULL && n > 0 && fwrite(text, 1, n, out) == n;
  if (in != NULL) fclose(in);
  if (out != NULL) done = fclose(out) == 0 && done;
  if (!done || rename(aside, copy) != 0) return "lavapipe's manifest cannot be copied";
  snprintf(files, sizeof files, "%s:%s", manifest, copy);
  setenv("VK_DRIVER_FILES", files, 1);
  setenv("VK_ICD_FILENAMES", files, 1); /* what older loaders read */
  setenv("XDG_RUNTIME_DIR", folder, 0); /* lavapipe has a line about it else */
  return NULL;
}

#endif
