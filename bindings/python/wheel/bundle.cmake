# Fills the package's folder from an installed prefix: libraries under the names that they are loaded by (a wheel has no
# links), and the libraries of others that they need and a machine may lack. Then every file finds the rest from where it
# lies. Needs wheel_prefix (or wheel_tree, which is installed into wheel_stage first), wheel_package, and the programs
# wheel_patchelf and wheel_strip.

if(NOT wheel_prefix)
  file(REMOVE_RECURSE "${wheel_stage}")
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${wheel_tree}" --prefix "${wheel_stage}" --strip
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(wheel_prefix "${wheel_stage}")
endif()

# Each file once, as FOLDER/NAME; its name is the one that others ask for.
file(GLOB libraries "${wheel_prefix}/lib/libheddle*.so.0")
file(GLOB plugins "${wheel_prefix}/lib/heddle/plugins/*.so" "${wheel_prefix}/lib/heddle/plugins/*.so.*")
list(FILTER plugins EXCLUDE REGEX "plugin_remote") # OpenSSL is for the distribution to keep up to date
file(GLOB helpers "${wheel_prefix}/libexec/heddle/*")
set(tool "${wheel_prefix}/bin/heddle")
if(NOT libraries OR NOT plugins OR NOT EXISTS "${tool}")
  message(FATAL_ERROR "${wheel_prefix} has not all of libheddle, its plugins and its tool; the wheel needs all three.")
endif()

# What every Linux with glibc has, and the drivers' loaders, which must be the machine's own.
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${libraries} ${plugins}
  EXECUTABLES "${tool}" ${helpers}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR lost
  CONFLICTING_DEPENDENCIES_PREFIX twice
  PRE_EXCLUDE_REGEXES "^(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\\+\\+)[-.]"
    "^(libOpenCL|libvulkan|libcuda|libamdhip64|libhiprtc|libnvrtc)\\."
  DIRECTORIES "${wheel_prefix}/lib")
foreach(name IN LISTS twice_FILENAMES)
  list(GET twice_${name} 0 first)
  list(APPEND found "${first}")
endforeach()
if(lost)
  message(FATAL_ERROR "The wheel needs libraries that are not on this machine: ${lost}")
endif()
list(FILTER found EXCLUDE REGEX "/libheddle[^/]*$|/libdnnl\\.so")

function(place folder run_path)
  foreach(path IN LISTS ARGN)
    get_filename_component(name "${path}" NAME)
    get_filename_component(real "${path}" REALPATH)
    set(target "${wheel_package}/${folder}/${name}")
    configure_file("${real}" "${target}" COPYONLY)
    file(CHMOD "${target}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    if(wheel_strip)
      execute_process(COMMAND "${wheel_strip}" --strip-unneeded "${target}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
    execute_process(COMMAND "${wheel_patchelf}" --set-rpath "${run_path}" "${target}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

file(REMOVE_RECURSE "${wheel_package}/lib" "${wheel_package}/bin" "${wheel_package}/libexec" "${wheel_package}/licenses")
place(lib "$ORIGIN" ${libraries} ${found})
place(lib/heddle/plugins "$ORIGIN:$ORIGIN/../.." ${plugins})
foreach(folder IN ITEMS tvm tvm-0.8) # for libraries that name TVM's runtime as one that they need
  file(GLOB runtime "${wheel_prefix}/lib/heddle/${folder}/libtvm_runtime.so")
  place(lib/heddle/${folder} "$ORIGIN/../.." ${runtime})
endforeach()
place(bin "$ORIGIN/../lib" "${tool}")
place(libexec/heddle "$ORIGIN/../../lib" ${helpers})

# libheddle has the folders of its installation built in; those of a prefix that was copied are not the system's.
file(WRITE "${wheel_package}/lib/heddle/system_prefix" "/usr/local\n")

# What the licences of others ask for, where the distribution put it.
foreach(path IN LISTS found)
  get_filename_component(name "${path}" NAME)
  string(REGEX REPLACE "^(lib.*)\\.so\\.([0-9]+).*$" "\\1\\2" package "${name}") # libjansson.so.4: Debian's libjansson4
  if(EXISTS "/usr/share/doc/${package}/copyright")
    configure_file("/usr/share/doc/${package}/copyright" "${wheel_package}/licenses/${package}.txt" COPYONLY)
  else()
    message(STATUS "No text of the licence of ${name} was found to put into the wheel.")
  endif()
endforeach()
