# SPDX-License-Identifier: Apache-2.0
# version.h: what --version prints. The commit is looked up at configure time; a build from a tarball says "unknown".
find_package(Git QUIET)
set(PERNODE_COMMIT unknown)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
	execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
		OUTPUT_VARIABLE PERNODE_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	if(NOT PERNODE_COMMIT)
		set(PERNODE_COMMIT unknown)
	endif()
endif()
configure_file(cmake/version.h.in generated/version.h @ONLY)
target_include_directories(pernode_flags INTERFACE ${PROJECT_BINARY_DIR}/generated)
