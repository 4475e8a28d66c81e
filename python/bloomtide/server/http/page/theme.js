// Before the first paint: the theme that was chosen last. Without a choice the system decides.
try {
  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* storage is switched off */ }
