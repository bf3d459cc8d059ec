// Two ranks side by side: a choice fills its column.
const pair = document.querySelector(".pair");
if (pair) {
  const { texts, shares } = JSON.parse(document.getElementById("pair-data").textContent);
  for (const one of all(".plain", pair)) one.hidden = true;
  for (const choice of all("select", pair)) {
    choice.addEventListener("change", () => {
      const rank = Number(choice.value);
      all(`td[data-side="${choice.dataset.side}"]`, pair).forEach((cell, figure) => {
        cell.firstElementChild.textContent = texts[rank][figure];
        cell.querySelector("rect:last-child").setAttribute("width", `${100 * shares[rank][figure]}%`);
      });
      say(`${choice.selectedOptions[0].textContent} is shown.`);
    });
  }
}
