# Builds each folder plugins/NAME that has sources, under an option HEDDLE_PLUGIN_NAME = AUTO, ON or OFF.
#
# A folder may hold a plugin.cmake, which is read first. It may set plugin_missing to what the machine lacks (AUTO then
# passes the plugin over, ON stops with that sentence), plugin_libraries, plugin_includes, plugin_definitions, and
# plugin_common to ON where the plugin compiles plugins/common into itself, plugin_kernels to ON where the kernels too,
# plugin_gpu to ON where it is plugins/common/gpu over a driver, and plugin_rpath to where the loader looks for libraries
# that lie beside the plugin.
set(plugins_with_common cpu sim)
set(HEDDLE_BUILT_PLUGINS "")
file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true plugins/*)
foreach(folder IN LISTS folders)
  get_filename_component(name "${folder}" NAME)
  if(NOT IS_DIRECTORY "${folder}" OR name STREQUAL "common")
    continue()
  endif()

  string(TOUPPER "HEDDLE_PLUGIN_${name}" option)
  set(${option} AUTO CACHE STRING "Build the plugin ${name}: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(${option} STREQUAL "AUTO")
    set(required OFF)
  elseif(${option})
    set(required ON)
  else()
    continue()
  endif()

  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.c")
  set(plugin_missing "")
  set(plugin_libraries "")
  set(plugin_includes "")
  set(plugin_definitions "")
  set(plugin_rpath "")
  set(plugin_common OFF)
  set(plugin_kernels OFF)
  set(plugin_gpu OFF)
  if(name IN_LIST plugins_with_common)
    set(plugin_common ON)
  endif()
  include("${folder}/plugin.cmake" OPTIONAL)
  if(NOT sources)
    set(plugin_missing "plugins/${name} has no sources")
  endif()
  if(plugin_missing)
    if(required)
      message(FATAL_ERROR "${option} is ON, but ${plugin_missing}.")
    endif()
    message(STATUS "Plugin ${name} is not built: ${plugin_missing}.")
    continue()
  endif()

  set(common "")
  if(plugin_common)
    set(common COMMON)
  endif()
  if(plugin_kernels)
    set(common KERNELS)
  endif()
  if(plugin_gpu)
    set(common GPU)
  endif()
  heddle_plugin(${name} ${common}
    SOURCES ${sources}
    LIBRARIES ${plugin_libraries}
    INCLUDES ${plugin_includes}
    DEFINITIONS HEDDLE_VERSION="${PROJECT_VERSION}" ${plugin_definitions})
  if(plugin_rpath)
    set_target_properties(heddle_plugin_${name} PROPERTIES INSTALL_RPATH "${plugin_rpath}" BUILD_WITH_INSTALL_RPATH ON)
  endif()
  list(APPEND HEDDLE_BUILT_PLUGINS ${name})
endforeach()
add_custom_target(heddle_plugins) # all of them, whichever there are
foreach(name IN LISTS HEDDLE_BUILT_PLUGINS)
  add_dependencies(heddle_plugins heddle_plugin_${name})
endforeach()
string(REPLACE ";" " " text "${HEDDLE_BUILT_PLUGINS}")
message(STATUS "Plugins: ${text}")

# An option for a plugin that has no folder (yet) is checked too.
foreach(name cpu sim null)
  string(TOUPPER "HEDDLE_PLUGIN_${name}" option)
  set(${option} AUTO CACHE STRING "Build the plugin ${name}: AUTO, ON or OFF")
  if(${option} AND NOT ${option} STREQUAL "AUTO" AND NOT name IN_LIST HEDDLE_BUILT_PLUGINS)
    message(FATAL_ERROR "${option} is ON, but plugins/${name} has no sources.")
  endif()
endforeach()
