// From a folder, pages may not be fetched: the search lists its finds without the lines around them.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
