// From a folder, pages may not be fetched: the search lists its finds without the lines around them.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// The list of versions is fetched from the published site; without a network the button says this version.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".version-switcher__button"))
    button.firstChild.textContent = `${DOCUMENTATION_OPTIONS.theme_switcher_version_match} `;
});

// The search lists a page of the reference once, by its best find.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results) return;
  new MutationObserver(() => {
    const seen = new Set();
    for (const link of results.querySelectorAll("ul.search > li > a")) {
      const page = link.href.split(/[?#]/)[0];
      if (seen.has(page) && page.includes("/reference/")) link.parentElement.remove();
      seen.add(page);
    }
  }).observe(results, { childList: true, subtree: true });
});
