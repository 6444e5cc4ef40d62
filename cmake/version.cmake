# SPDX-License-Identifier: Apache-2.0
# version.h: what --version prints, with the libraries that were built against. The commit is looked up at configure time; a build from a tarball says "unknown".
find_package(Git QUIET)
set(PERNODE_COMMIT unknown)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
	execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
		OUTPUT_VARIABLE PERNODE_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	if(NOT PERNODE_COMMIT)
		set(PERNODE_COMMIT unknown)
	endif()
endif()
get_property(PERNODE_LIBRARIES GLOBAL PROPERTY PERNODE_LIBRARIES)
string(REPLACE ";" ", " PERNODE_LIBRARIES "${PERNODE_LIBRARIES}")
configure_file(cmake/version.h.in generated/version.h @ONLY)
target_include_directories(pernode_flags INTERFACE ${PROJECT_BINARY_DIR}/generated)
